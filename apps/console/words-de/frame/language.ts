/** The language of times and numbers. */
export const LANGUAGE = 'de-DE'

const NOUN = /^(Ergebnis|Versuch|Eingaben|Wartung)/

/** A standalone word, such as a status, within a sentence: only nouns keep their capital. */
export const inSentence = (word: string): string =>
  NOUN.test(word) ? word : word.charAt(0).toLowerCase() + word.slice(1)
