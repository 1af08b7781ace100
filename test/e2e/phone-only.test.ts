import { afterAll, beforeAll } from 'vitest'
import { closeDesk, openDesk } from './desk.ts'
beforeAll(openDesk, 300_000)
afterAll(closeDesk, 60_000)
import './cases/phone.ts'
