import { afterAll, beforeAll, vi } from 'vitest'
import { startPlatform, stopPlatform } from './client.ts'

/** The command line client against a real platform: starting one is expensive, so all cases share it. */
// Every step is a separate process, and the machine has other tests to run.
vi.setConfig({ testTimeout: 120_000 })
beforeAll(startPlatform)
afterAll(stopPlatform)

// In this order: the later ones use what the earlier ones leave behind.
import './cases/session.ts'
import './cases/change.ts'
import './cases/tools.ts'
import './cases/notify.ts'
import './cases/administrator.ts'
import './cases/terminal.ts'
import './cases/import.ts'
import './cases/import.sources.ts'
import './cases/catalog.ts'
