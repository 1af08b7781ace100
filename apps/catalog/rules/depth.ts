import type { Violation } from '../../shared/errors.ts'

/** Levels of containment at most, the root's among them (catalog.md 4). */
export const MAX_DEPTH = 32

/** The levels from the root to the resource at this path, both counted. */
export const depthOf = (path: string): number => path.split('.').length

/** What is wrong with a resource at this depth; what was deeper already may stay as deep. */
export const depthViolations = (depth: number, was: number, most: number, pointer: string): Violation[] =>
  depth <= most || depth <= was
    ? []
    : [{ pointer, code: 'too_deep', message: `would make ${depth} levels of containment, ${most} are allowed` }]
