import { describe, expect, it } from 'vitest'
import { ALERTS, addressOf, MADE, PANELS, RULES, RUNBOOKS } from './support/alerts.ts'
import { readPromql, unanswered } from './support/promql.ts'

/** The rules, the dashboard and the runbooks against each other; observe.test.ts compares them with running apps. */
describe('an alert', () => {
  it('has its own runbook, and each runbook has its alert', () => {
    expect(new Set(ALERTS.map(({ alert }) => alert)).size).toBe(ALERTS.length)
    expect([...RUNBOOKS.keys()]).toEqual(ALERTS.map(({ alert }) => alert))
    for (const { alert = '', annotations } of ALERTS) expect(annotations?.runbook_url).toBe(addressOf(alert))
  })

  it('has a runbook for people: who notices, how to see it, what to do, and when it is over', () => {
    for (const [name, section] of RUNBOOKS)
      for (const part of ['Users', 'See', 'Do', 'Over']) expect(section, name).toMatch(`- **${part}**: `)
  })

  it('states its urgency, and names in its summary only its own labels', () => {
    for (const { alert, expr, labels, annotations } of ALERTS) {
      expect(['page', 'ticket'], alert).toContain(labels?.severity)
      const { selectors, grouped } = readPromql(expr)
      const ours = selectors.filter(({ name }) => MADE.some((one) => one.name === name))
      const has = [
        ...grouped,
        ...MADE.filter(({ name }) => ours.some((one) => one.name === name)).flatMap((one) => Object.keys(one.labels)),
      ]
      for (const [, label] of (annotations?.summary ?? '').matchAll(/\$labels\.(\w+)/g))
        expect(has, alert).toContain(label)
    }
  })
})

describe('an expression', () => {
  it('of every rule and panel is PromQL', () => {
    for (const { expr } of [...RULES, ...PANELS.flatMap(({ targets = [] }) => targets)])
      expect(readPromql(expr).selectors.length + Number(expr.startsWith('vector(')), expr).toBeGreaterThan(0)
    expect(() => readPromql('max(signalbox_relay_active')).toThrow('no PromQL')
  })

  it('with an unknown name, label or value is found', () => {
    const series = [{ name: 'signalbox_relay_active', labels: { schema: 'token', app: 'relay' } }]
    expect(unanswered('max by (schema) (signalbox_relay_active{app="relay"})', series)).toEqual([])
    for (const wrong of [
      'signalbox_relay_activ',
      'signalbox_relay_active{schemas!=""}',
      'signalbox_relay_active{app="x"}',
      'max by (shema) (signalbox_relay_active)',
    ])
      expect(unanswered(wrong, series), wrong).toHaveLength(1)
  })
})
