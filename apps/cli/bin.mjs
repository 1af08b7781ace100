#!/usr/bin/env node
/** `npx signalbox …`: hands over to the shared entry point of every script, which finds Node 24 and the packages. */
process.argv.splice(2, 0, 'signalbox')
// An address: a path with `#`, `?` or `%` would be none.
await import(new URL('../platform/bootstrap.mjs', import.meta.url).href)
