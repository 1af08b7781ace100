import { registerHooks } from 'node:module'

/**
 * Loaded before an app (node --import). For each module, Node looks for the file and parses the package.json of its
 * package again. That of drizzle-orm has 180 KB, which cost every process half a second and 200 MB. Neither lookup tells
 * anything about a relative import of these packages or of our own files, which name the file itself.
 */
const MODULES = /\/node_modules\/(?:drizzle-orm\/[^?]*\.js|typebox\/[^?]*\.mjs)$/

registerHooks({
  resolve(specifier, context, next) {
    const parent = context.parentURL
    if (!specifier.startsWith('.') || !parent) return next(specifier, context)
    const own = specifier.endsWith('.ts') && !parent.includes('/node_modules/')
    if (!own && !MODULES.test(parent)) return next(specifier, context)
    return { url: new URL(specifier, parent).href, format: own ? 'module-typescript' : 'module', shortCircuit: true }
  },
})
