/** What happened, what the caller does next, and the HTTP statuses if they differ from the category's. */
export type Entry = readonly [means: string, remedy: string, ...status: number[]]
export type Codes = Record<string, Record<string, Entry>>

export const WAIT = 'Repeat the same request with the same Idempotency-Key after the time in Retry-After.'
export const READ = 'Read the object again and decide on its current version.'
export const FIX = 'Correct the fields named in violations.'
