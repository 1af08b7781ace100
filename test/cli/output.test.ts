import { describe, expect, it } from 'vitest'
import { harmless } from '../../apps/cli/terminal/output.ts'

describe('foreign text', () => {
  it('cannot control the terminal or reverse letters, however deep it is nested; its words stay', () => {
    const esc = '\u001b'
    const told = {
      title: `web${esc}[2J${esc}]0;owned\u0007 2.4.0`,
      nodes: [{ error_message: 'refused\r\u009b31m by \u202etsoh', attempt: 2, ended_at: null }],
    }
    expect(harmless(told)).toEqual({
      title: 'web 2.4.0',
      nodes: [{ error_message: 'refused by tsoh', attempt: 2, ended_at: null }],
    })
    expect(harmless('first\n\tsecond, ä 日本 👍')).toBe('first\n\tsecond, ä 日本 👍')
  })
})
