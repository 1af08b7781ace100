#!/usr/bin/env node
/** `npx signalbox …`: hands over to the shared entry point of every script, which finds Node 24 and the packages. */
import { fileURLToPath } from 'node:url'

process.argv.splice(2, 0, 'signalbox')
await import(fileURLToPath(new URL('../platform/bootstrap.mjs', import.meta.url)))
