import type { Violation } from '../../shared/errors.ts'

/** The maximum levels of containment, including the root (catalog.md 4). */
export const MAX_DEPTH = 32

/** The number of levels from the root to the resource at this path, both included. */
export const depthOf = (path: string): number => path.split('.').length

/** The violations of a resource at this depth; one that was already deeper may stay as deep. */
export const depthViolations = (depth: number, was: number, most: number, pointer: string): Violation[] =>
  depth <= most || depth <= was
    ? []
    : [{ pointer, code: 'too_deep', message: `would make ${depth} levels of containment; at most ${most} are allowed` }]
