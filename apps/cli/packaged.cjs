#!/usr/bin/env node
// Entry point of the packaged client: checks the version of Node and keeps the compiled code between starts.
const { enableCompileCache } = require('node:module')
const { homedir } = require('node:os')
const { join } = require('node:path')

if (Number(process.versions.node.split('.')[0]) < 20) {
  console.error(`signalbox needs Node 20 or newer; this is ${process.version}. Install a newer Node.`)
  process.exit(2)
}
const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
enableCompileCache?.(process.env.NODE_COMPILE_CACHE || join(cache, 'signalbox', 'compile'))
require('./signalbox.cjs')
