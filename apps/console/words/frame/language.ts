/** The language of times and numbers. */
export const LANGUAGE = 'en-GB'

/** A standalone word, such as a status, within a sentence. */
export const inSentence = (word: string): string => word.toLowerCase()
