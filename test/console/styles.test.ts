import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/** The two sheets of values in tokens.css, the second on top of the first; each has a light and a dark value. */
const css = readFileSync(new URL('../../apps/console/styles/tokens.css', import.meta.url), 'utf8')
const block = (selector: string, dark: boolean): Record<string, string> => {
  const start = css.indexOf(`${selector} {`)
  if (start === -1) throw new Error(`no block ${selector}`)
  const body = css.slice(start, css.indexOf('}', start))
  const values = /--([\w-]+):\s*(?:light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)|(#[0-9a-f]{6}));/g
  return Object.fromEntries(
    [...body.matchAll(values)].map(([, name, day, night, both]) => [name, both ?? (dark ? night : day)]),
  )
}
const normal = (dark: boolean) => block(':root', dark)
const more = (dark: boolean) => ({ ...normal(dark), ...block(':root[data-contrast="more"]', dark) })

const luminance = (hex: string): number => {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}
const contrast = (a: string, b: string): number => {
  const [high = 0, low = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x)
  return (high + 0.05) / (low + 0.05)
}

const GROUNDS = ['bg', 'surface', 'sunken']
const STATUSES = ['run', 'wait', 'ok', 'bad', 'odd', 'hold', 'idle']

describe.each([
  ['light', normal(false), 5.6],
  ['dark', normal(true), 5.6],
  ['high contrast light', more(false), 9.4],
  ['high contrast dark', more(true), 9.4],
])('tokens: %s', (_name, tokens, least) => {
  /** To one decimal, as the design states them; the standard itself requires 4.5. */
  const ratio = (ink: string, ground: string): number =>
    Math.round(contrast(tokens[ink] ?? '', tokens[ground] ?? '') * 10) / 10

  it('keeps text, links and every status readable on every ground', () => {
    for (const ink of ['text', 'muted', 'accent', ...STATUSES])
      for (const ground of GROUNDS) expect(ratio(ink, ground), `${ink} on ${ground}`).toBeGreaterThanOrEqual(least)
  })

  it('keeps every status readable on its own soft tint', () => {
    for (const status of STATUSES) expect(ratio(status, `${status}-soft`), status).toBeGreaterThanOrEqual(least)
  })

  it('keeps words on solid fills readable', () => {
    for (const fill of ['accent', 'bad']) expect(ratio('on-accent', fill), fill).toBeGreaterThanOrEqual(6.5)
    // The environment badge and the count next to the inbox: small text of weight 600.
    for (const fill of ['ok', 'wait']) expect(ratio('on-accent', fill), fill).toBeGreaterThanOrEqual(4.5)
  })

  it('keeps edges of controls and the focus ring visible', () => {
    for (const ground of ['bg', 'surface']) {
      expect(ratio('control', ground), ground).toBeGreaterThanOrEqual(3.7)
      expect(ratio('focus', ground), ground).toBeGreaterThanOrEqual(3)
    }
  })
})
