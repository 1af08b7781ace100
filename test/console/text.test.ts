import { describe, expect, it } from 'vitest'
import { deviceWords } from '../../apps/console/account/device-words.ts'
import { signInError } from '../../apps/console/forms/sign-in-error.ts'
import {
  clockTime,
  coarse,
  duration,
  exactTime,
  fileSize,
  fullTime,
  shortTime,
  unbroken,
} from '../../apps/console/kit/format.ts'
import { runsOf } from '../../apps/console/logs/ansi.ts'
import { bandsIn, bandsOf, dayStarts } from '../../apps/console/overview/days.ts'
import { tAccount } from '../../apps/console/words/account.ts'
import { plural } from '../../apps/console/words/frame/rules.ts'
import { t } from '../../apps/console/words/index.ts'
import { nextPath } from '../../apps/shared/contracts/client/next-path.ts'
import { lookOf, operationLook } from '../../apps/shared/contracts/client/status.ts'
import { GATE_STATUSES, NODE_STATES, OPERATION_STATUSES } from '../../apps/shared/contracts/operations/graph.ts'

const text = (line: string): string =>
  runsOf(line)
    .map((run) => run.text)
    .join('')

describe('a sign-in that failed', () => {
  const now = Date.UTC(2030, 0, 1, 12)
  it.each<[what: string, refusal: { status: number | null; code?: string; retry_after_ms?: number }, words: string]>([
    ['no answer', { status: null }, 'The server did not answer. Check the network and try again.'],
    ['a wrong password', { status: 401 }, 'The username or password is wrong, or this account may not sign in.'],
    ['too many attempts', { status: 429, code: 'login_limit' }, 'Too many attempts. Try again at 12:00:03.'],
    [
      'a closed name',
      { status: 429, code: 'login_locked', retry_after_ms: 0 },
      'Too many attempts. Ask an administrator to unlock the account.',
    ],
    [
      'a full queue',
      { status: 429, code: 'login_busy' },
      'Sign-in is busy: too many people are signing in. Try again at 12:00:03.',
    ],
    [
      'an overload',
      { status: 503, code: 'login_busy' },
      'Sign-in is busy: too many people are signing in. Try again at 12:00:03.',
    ],
    ['a service that is away', { status: 503 }, 'Sign-in is not available. Try again at 12:00:03.'],
  ])('names the next step after %s', (_, refusal, words) =>
    expect(signInError({ ok: false, retry_after_ms: 3000, ...refusal }, 'utc', now)).toBe(words),
  )
})

describe('the page after a sign-in', () => {
  const origin = 'https://console.example'
  it('is a path of this origin', () => {
    for (const next of ['/operations/1/graph?node=a#L3', '/', '/?x=1', '/apiary'])
      expect(nextPath(next, origin)).toBe(next)
  })

  it('is never another origin, in any spelling', () => {
    for (const next of [
      '//evil.example/x',
      '/\\evil.example',
      'https://evil.example/',
      'javascript:alert(1)',
      '/\t/evil.example',
      '\\\\evil.example',
      ' //evil.example',
      '/.//evil.example',
      '/a/..//evil.example',
      '/./\\evil.example',
      '/login?next=/x',
      '/v1/sso/corp/start',
      '/api/v1/operations',
      '/x/../scim/v2/Users',
      '',
      undefined,
      ['/a'],
    ])
      expect(nextPath(next, origin)).toBe('/inbox')
  })
})

describe('the place of a sign-in', () => {
  const words = (agent: string | null) => deviceWords(agent, tAccount.sessions.on)
  it('is given in familiar words', () => {
    const mac = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit'
    for (const [agent, said] of [
      ['Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0', 'Firefox 130 on Linux'],
      [`${mac}/605.1.15 (KHTML, like Gecko) Version/17.6 Safari/605.1.15`, 'Safari 17 on macOS'],
      [`${mac}/537.36 (KHTML, like Gecko) Chrome/129.0.0.0 Safari/537.36`, 'Chrome 129 on macOS'],
      [
        'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/129.0.0.0 Safari/537.36 Edg/129.0.0.0',
        'Edge 129 on Windows',
      ],
      [
        'Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.6 Mobile/15E148 Safari/604.1',
        'Safari 17 on iPhone',
      ],
      [
        'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/129.0.0.0 Mobile Safari/537.36',
        'Chrome 129 on Android',
      ],
      ['curl/8.5.0', 'curl 8.5.0'],
      ['node', 'node'],
    ])
      expect(words(agent as string)).toBe(said)
    expect([words(null), words(' ')]).toEqual([null, null])
  })
})

describe('log lines', () => {
  it('become classes for colors, and plain text otherwise', () => {
    expect(runsOf('\u001b[31mred\u001b[0m and \u001b[1mbold\u001b[0m')).toEqual([
      { text: 'red', className: 'ansi-red' },
      { text: ' and ', className: '' },
      { text: 'bold', className: 'ansi-bold' },
    ])
  })

  it('lose links, titles, cursor moves and other escapes', () => {
    expect(text('a\u001b]8;;https://evil.example\u0007link\u001b]8;;\u0007b')).toBe('alinkb')
    expect(text('\u001b]0;title\u001b\\x\u001b[2J\u001b[1;1Hy\u001b[?25lz')).toBe('xyz')
    expect(text('a\u001bP1$r\u001b\\b\u009b31mc\u001b(Bd')).toBe('abcd')
    expect(text('unfinished \u001b]8;;https://evil')).toBe('unfinished ')
  })

  it('lose control characters that change how text reads', () => {
    expect(text('user\u202eecila\u202c ok\u200b\u2066x\u2069\u0000\u0008')).toBe('userecila okx')
    expect(text('tab\tstays')).toBe('tab\tstays')
  })

  it('keep markup as text', () => {
    expect(text('<img src=x onerror=alert(1)> & "q"')).toBe('<img src=x onerror=alert(1)> & "q"')
    expect(text('\u001b[32m<b>&amp;</b>\u001b[0m')).toBe('<b>&amp;</b>')
  })
})

describe('times and numbers', () => {
  const at = Date.parse('2026-11-21T12:04:31.123456Z')
  it('always say their zone in full form', () => {
    expect(fullTime(at, 'utc')).toBe('21 Nov 2026, 12:04:31 UTC')
    expect(clockTime(at, 'utc', true)).toBe('12:04:31')
  })

  it('name the day when it is another one', () => {
    expect(shortTime(at, at + 3_600_000, 'utc')).toBe('12:04')
    expect(shortTime(at, at + 86_400_000, 'utc')).toBe('21 Nov, 12:04')
    expect(shortTime(at, at + 365 * 86_400_000, 'utc')).toBe('21 Nov, 12:04')
  })

  it('are those of the chosen zone, and of UTC in one that the browser does not know', () => {
    expect(fullTime(at, 'Asia/Kolkata')).toBe('21 Nov 2026, 17:34:31 GMT+5:30')
    expect(fullTime(at, 'Mars/Olympus')).toBe('21 Nov 2026, 12:04:31 UTC')
    expect(exactTime(at, at, 'Asia/Kolkata')).toBe('17:34:31 GMT+5:30')
    expect(exactTime(at, at + 86_400_000, 'utc')).toBe('21 Nov 2026, 12:04:31 UTC')
  })

  it('begin a day at its midnight, also on the days when clocks change', () => {
    const starts = (day: string, zone: string) =>
      dayStarts(Date.parse(day), zone, 2).map((start) => new Date(start).toISOString().slice(0, 16))
    expect(starts('2026-11-21T12:04:31.5Z', 'utc')).toEqual([
      '2026-11-21T00:00',
      '2026-11-22T00:00',
      '2026-11-23T00:00',
    ])
    const spring = ['2026-03-27T23:00', '2026-03-28T23:00', '2026-03-29T22:00']
    expect(starts('2026-03-28T08:00:00Z', 'Europe/Berlin')).toEqual(spring)
    const autumn = ['2026-10-23T22:00', '2026-10-24T22:00', '2026-10-25T23:00']
    expect(starts('2026-10-24T21:59:59Z', 'Europe/Berlin')).toEqual(autumn)
    expect(starts('2026-11-21T18:30:00Z', 'Asia/Kolkata')[0]).toBe('2026-11-21T18:30')
    // Here the clocks skip midnight itself: the day begins when they do.
    const skipped = ['2026-03-28T01:00', '2026-03-29T01:00', '2026-03-30T00:00']
    expect(starts('2026-03-28T12:00:00Z', 'Atlantic/Azores')).toEqual(skipped)
    expect(starts('2026-03-29T12:00:00Z', 'Atlantic/Azores')[0]).toBe('2026-03-29T01:00')
  })

  it('of a window that opens each night are in each day of the calendar, once', () => {
    const days = dayStarts(Date.parse('2026-11-21T12:00:00Z'), 'utc', 14)
    const openings = days.map((day) => ({
      opens_at: new Date(day + 22 * 3_600_000).toISOString(),
      closes_at: new Date(day + 28 * 3_600_000).toISOString(),
    }))
    const bands = bandsOf({ freezes: [], windows: [{ window_id: 'night', openings }] })
    const shown = days.slice(0, 14).map((day, at) => bandsIn(bands, day, days[at + 1] ?? 0).length)
    expect(shown).toEqual(Array.from({ length: 14 }, () => 1))
    // A server that is older than the console tells no openings.
    expect(bandsOf({ freezes: [], windows: [{ window_id: 'night' }] })).toEqual([])
  })

  it('write durations with at most two units', () => {
    expect([0, 850, 4210, 59_999, 185_000, 3_840_000, 97_200_000].map(duration)).toEqual(
      ['0 ms', '850 ms', '4.2 s', '59 s', '3 min 05 s', '1 h 04 min', '1 d 03 h'].map(unbroken),
    )
    expect([5000, 120_000, 7_200_000, 300_000_000].map(coarse)).toEqual(['5 s', '2 min', '2 h', '3 d'].map(unbroken))
    expect([0, 999, 4210, 1_349_000].map(fileSize)).toEqual(['0 B', '999 B', '4.2 kB', '1.3 MB'].map(unbroken))
    expect(unbroken('1 h 04 min')).toBe('1\u00a0h\u00a004\u00a0min')
  })

  it('count with the forms of the language', () => {
    expect(plural('en', 1, { one: 'one line', other: '{n} lines' })).toBe('one line')
    expect(plural('en', 1200, { one: 'one line', other: '{n} lines' })).toBe('1,200 lines')
  })
})

describe('status words', () => {
  it('exist for every state of operations, nodes and gates', () => {
    for (const state of [...OPERATION_STATUSES, ...NODE_STATES, ...GATE_STATUSES])
      expect(t.status[lookOf(state).word], state).toBeTruthy()
  })

  it('show a state of a later release as unknown, never as fine', () => {
    expect(lookOf('levitating').word).toBe('unknown')
  })

  it('tell waiting for a person from waiting for a machine', () => {
    expect(operationLook('blocked', [{ kind: 'gate' }]).word).toBe('waiting_person')
    expect(operationLook('blocked', [{ kind: 'failed_node' }]).word).toBe('waiting_person')
    expect(operationLook('blocked', [{ kind: 'lease' }]).word).toBe('waiting')
  })
})
