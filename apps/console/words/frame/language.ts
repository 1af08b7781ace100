/** The language of times and numbers. */
export const LANGUAGE = 'en-GB'

/** The words of a person, which stay as they were written. */
export const quoted = (words: string): string => `“${words}”`

/** A word of its own, such as a status, within a sentence. */
export const inSentence = (word: string): string => word.toLowerCase()
