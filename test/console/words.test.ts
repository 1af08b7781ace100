import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { tLogin } from '../../apps/console/words/frame/login.ts'
import { plan as inEnglish } from '../../apps/console/words/operations/plan.ts'
import { saidOf } from '../../apps/console/words-de/frame/codes.ts'
import { tLogin as inGerman } from '../../apps/console/words-de/frame/login.ts'
import { operation } from '../../apps/console/words-de/operations/operation.ts'
import { plan } from '../../apps/console/words-de/operations/plan.ts'
import { ROOT } from '../../apps/platform/base/paths.ts'
import { CODES } from '../../apps/shared/contracts/codes.ts'
import { wordPairs } from '../support/words.ts'

const WORDS = join(ROOT, 'apps/console/words')
/** Words that are the same in both languages, including keys, symbols and examples. */
const SAME =
  /^(Agent|Browser|Canary|Code|Commit|Export|Graph|Hash|ID|Labels|Logs?|Matrix|Name|Offline|Passkeys|Plan|Pools|Regions?|Revision|Runbooks?|Segment|Status|System|Test|Ticket|Version|Webhook)$/
const NAMES = /^(Deutsch|English|SHA-256|Signalbox|Slack|Standard Webhooks|Teams|UTC)$/
const KEYS = /keys entries|marks \w+ sign$|where examples|(signatures|overlaps) \d 0$|if_example$/

it('say how the dependents of changed resources would be, not how they are', () => {
  expect(inEnglish.affected(1, false, 1)).toBe(
    'One resource would be affected if the changed ones failed: 1 would become unhealthy.',
  )
  expect(inEnglish.affected(4, true, 3)).toMatch(/failed: 3 would become unhealthy, 1 would become degraded\.$/)
  expect(plan.affected(4, false, 3)).toMatch(/4 Ressourcen, 3 wären gestört, 1 wäre eingeschränkt\.$/)
})

describe('the words of the console in German', () => {
  it('exist for every module of English words', () => {
    const modules = readdirSync(WORDS, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
    const missing = modules.filter(
      (path) => /^ +\w+: ['`]/m.test(readFileSync(join(WORDS, path), 'utf8')) && !existsSync(join(`${WORDS}-de`, path)),
    )
    expect(missing).toEqual([])
  })

  it('differ from the English ones', async () => {
    const pairs = await wordPairs()
    expect(pairs.length).toBeGreaterThan(800)
    const left = pairs.filter(
      ({ key, english, german }) =>
        english === german && !SAME.test(english) && !NAMES.test(english) && !KEYS.test(key),
    )
    expect(left.map(({ key, english }) => `${key}: ${english}`)).toEqual([])
  })

  it('give refusals in German, each with its next step', () => {
    const codes = Object.values(CODES).flatMap((category) => Object.entries<readonly unknown[]>(category))
    const said = codes.flatMap(([code, english]) => {
      const german = saidOf(code)
      return german ? [{ code, english, german }] : []
    })
    expect(said.length).toBeGreaterThan(130)
    const odd = said.filter(
      ({ english, german }) =>
        german.some((text) => english.includes(text) || !/^[\p{Lu}h].*[.]$/u.test(text)) || german[0] === german[1],
    )
    expect(odd).toEqual([])
    expect([saidOf('constructor'), saidOf('of a newer release')]).toEqual([undefined, undefined])
  })

  it('say why a sign-in through a provider was refused, with the next step', () => {
    const read = (name: string) => readFileSync(join(ROOT, 'apps/session/sso', name), 'utf8')
    const codes = [...(read('callback.ts') + read('claims.ts')).matchAll(/\brefused(?:Token)?\('(\w+)'/g)].map(
      ([, code = '']) => code,
    )
    expect(codes).toContain('provider_factor_missing')
    expect(Object.keys(tLogin.refused)).toEqual(expect.arrayContaining(codes))
    expect(Object.keys(inGerman.refused).sort()).toEqual(Object.keys(tLogin.refused).sort())
    // For someone who makes an account, a name that is taken has another remedy.
    const elsewhere = Object.keys(inGerman.refused).filter((code) => code !== 'username_taken')
    expect(elsewhere.map(saidOf)).toEqual(elsewhere.map((code) => inGerman.refused[code]))
  })

  it('have the quotation marks of their language: the components have none', () => {
    const console_dir = join(WORDS, '..')
    const parts = readdirSync(console_dir, { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.tsx'),
    )
    expect(parts.filter((path) => /[“”„]/.test(readFileSync(join(console_dir, path), 'utf8')))).toEqual([])
  })

  it('are never empty, padded or typed like English', async () => {
    const odd = (await wordPairs()).filter(
      ({ german }) => german.trim() !== german || german === '' || /["“”]\w/.test(german),
    )
    expect(odd).toEqual([])
  })

  it('say each risk factor and warning of a plan, with its numbers and names; without values the server does', () => {
    const values = {
      count: 13,
      gate: 'go',
      node: 'apply',
      resource: 'eu1-web-02',
      groups: 'netops',
      pool: 'infra',
      labels: 'region=eu1',
      steps: 'plan',
      seen: '',
    }
    const source = ['planner/risk', 'planner/gates', 'planner/plan', 'packs/previews', 'graph/order']
      .map((path) => readFileSync(join(ROOT, `apps/operations/${path}.ts`), 'utf8'))
      .join('')
    const found = source.matchAll(/(?:\badd\(|warnings\.push\(\{\s*code: )'(\w+)'/g)
    const codes = [...[...found].map(([, code = '']) => code), 'no_eligible_approver', 'no_agent']
    expect(codes).toHaveLength(14)
    for (const code of codes) {
      const said = plan.said(code, values)
      expect([code, said]).toEqual([code, expect.stringMatching(/^[\p{Lu}\d„][^{}]*\.$/u)])
      expect(said).not.toMatch(/undefined|NaN/)
    }
    expect(plan.said('dependents', values)).toBe('13 Ressourcen hängen davon ab.')
    expect([plan.said('dependents', {}), plan.said('of_a_newer_release', values)]).toEqual([undefined, undefined])
  })

  it('say of a gate in the way only that it waits; other states, and kinds that mean several things, the server says', () => {
    const said = (kind: string, message: string) => operation.blocked_on(kind, 'go', message)
    expect(said('gate', 'Gate go waits for a decision.')).toBe('Freigabe go wartet auf eine Entscheidung.')
    expect(said('gate', 'Gate go was rejected.')).toBe(undefined)
    for (const kind of ['catalog', 'executor', 'failed_node', 'outcome_unknown'])
      expect([kind, said(kind, 'Some reason.')]).toEqual([kind, undefined])
  })
})
