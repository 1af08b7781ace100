import { pairsOf } from './compare.ts'

/** Pairs the lines of two logs off the main thread and answers once. */
self.onmessage = ({ data }: MessageEvent<{ before: string[]; after: string[] }>) =>
  self.postMessage(pairsOf(data.before, data.after))
