/** Words of people and targets in the engine's markdown: they draw no link under another text there. */
export const inMarkdown = (text: string): string => text.replaceAll(/[\\`*[\]<>]/g, '\\$&')

/** How long each text may be in a message of so many facts: the engine takes no message above 2 MB (temporal.md 2). */
export const roomFor = (facts: number): number => Math.floor(200_000 / facts)
