import { registerHooks } from 'node:module'

/**
 * Loaded before an app (node --import). For each module, Node parses the package.json of its package again. That of
 * drizzle-orm has 180 KB, which cost every process half a second and 200 MB. Its modules import each other by relative
 * paths that need no such lookup.
 */
const DRIZZLE = /\/node_modules\/drizzle-orm\/[^?]*\.js$/

registerHooks({
  resolve(specifier, context, next) {
    const parent = context.parentURL
    if (!specifier.startsWith('.') || !parent || !DRIZZLE.test(parent)) return next(specifier, context)
    return { url: new URL(specifier, parent).href, format: 'module', shortCircuit: true }
  },
})
