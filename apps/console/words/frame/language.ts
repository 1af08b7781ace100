/** The language of times and numbers. */
export const LANGUAGE = 'en-GB'

/** A word of its own, such as a status, within a sentence. */
export const inSentence = (word: string): string => word.toLowerCase()
