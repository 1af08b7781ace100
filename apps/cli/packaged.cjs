#!/usr/bin/env node
// Entry point of the packaged client: checks the version of Node and keeps the compiled code between starts.
const { enableCompileCache } = require('node:module')
const { homedir } = require('node:os')
const { join } = require('node:path')

if (Number(process.versions.node.split('.')[0]) < 20) {
  console.error(`signalbox needs Node 20 or newer; this is ${process.version}. Install a newer Node.`)
  process.exit(2)
}
/** An account without an entry in passwd has no home folder; Node then uses its own temporary one. */
const cacheFolder = () => {
  if (process.env.XDG_CACHE_HOME) return process.env.XDG_CACHE_HOME
  try {
    return join(homedir(), '.cache')
  } catch {
    return undefined
  }
}
const cache = cacheFolder()
enableCompileCache?.(process.env.NODE_COMPILE_CACHE || (cache && join(cache, 'signalbox', 'compile')))
require('./signalbox.cjs')
