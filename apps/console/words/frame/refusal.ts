/** The meaning of a refusal and the next step, in the language of the page. */
export type Said = readonly [means: string, remedy: string]

/** Always `undefined`, because the server's own text is English. */
export const useRefusal = (_code: string): Said | undefined => undefined
