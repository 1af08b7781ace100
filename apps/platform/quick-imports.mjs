import { registerHooks } from 'node:module'

/**
 * Loaded before an app (node --import). For each module, Node looks for the file and parses the package.json of its
 * package again. That of drizzle-orm has 180 KB, which cost every process half a second and 200 MB. Neither lookup tells
 * anything about a relative import of these packages or of our own files, which name the file itself.
 */
const MODULES = /\/node_modules\/(?:drizzle-orm\/[^?]*\.js|typebox\/[^?]*\.mjs)$/

/** Where each package was found for our own files, which all share one `node_modules`. */
const packages = new Map()

registerHooks({
  resolve(specifier, context, next) {
    const parent = context.parentURL
    if (!parent) return next(specifier, context)
    const ours = !parent.includes('/node_modules/')
    if (ours && !/^\.|^\/|:/.test(specifier)) {
      const key = `${specifier} ${context.conditions.join()}`
      if (!packages.has(key)) packages.set(key, { ...next(specifier, context), shortCircuit: true })
      return packages.get(key)
    }
    const file = ours ? specifier.endsWith('.ts') : MODULES.test(parent)
    if (!specifier.startsWith('.') || !file) return next(specifier, context)
    return { url: new URL(specifier, parent).href, format: ours ? 'module-typescript' : 'module', shortCircuit: true }
  },
})
