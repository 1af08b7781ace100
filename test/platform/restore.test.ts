import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { scratchFolder } from '../support/servers.ts'
import { runVerb } from './support/verb.ts'

/** A whole platform whose database goes back, with all later events (reliability.md 4.13). */
const folder = scratchFolder()
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('after a restore no part of the lost future is believed, and a person settles it with three commands', async () => {
  const drill = runVerb('ops', ['restore-drill', '--into', join(folder, 'drill')])
  const code = await drill.ended
  expect(drill.text()).not.toContain('FAIL')
  expect(drill.text()).toContain('The drill held.')
  expect(code).toBe(0)
}, 1_200_000)
