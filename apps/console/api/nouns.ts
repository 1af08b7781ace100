/** The nouns of the reads that a topic's news changes, besides the topic's own name. */
const MORE: Record<string, readonly string[]> = {
  inbox: ['me'],
  resources: ['places', 'gaps', 'definitions', 'providers'],
}

/** Whether the read of this key changes with the news of a topic. */
export const isAbout =
  (topic: string | undefined) =>
  ([noun]: readonly unknown[]): boolean =>
    noun === topic || MORE[topic ?? '']?.includes(String(noun)) === true
