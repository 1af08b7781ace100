/** The meaning of a refusal and the next step, in the language of the page. */
export type Said = readonly [means: string, remedy: string]

/** None: the server speaks English itself. */
export const useRefusal = (_code: string): Said | undefined => undefined
