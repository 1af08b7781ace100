import { describe, expect, it } from 'vitest'
import { atTerminal, json, passwords, signalbox } from '../client.ts'

describe('at a terminal', () => {
  /** A started operation of one gate, or its plan before the start. */
  const plan = async () => {
    const created = await signalbox('olga', ['intent', 'create', '-f', 'intent.json', '-o', 'id'])
    return json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', created.out.trim(), '-o', 'json']),
    )
  }
  const start = async ({ plan_id, plan_hash }: { plan_id: string; plan_hash: string }) =>
    (await signalbox('olga', ['plan', 'start', plan_id, '--yes', '--digest', plan_hash, '-o', 'id'])).out.trim()

  it('a password is asked for and not shown, states have colours, NO_COLOR takes them away', async () => {
    const at = atTerminal('olga', ['login', 'olga'])
    await at.shows('password:')
    at.type(passwords.get('olga') ?? '')
    expect(await at.code).toBe(0)
    expect(at.screen()).not.toContain(passwords.get('olga'))
    const coloured = atTerminal('olga', ['op', 'list'])
    expect(await coloured.code).toBe(0)
    expect(coloured.screen()).toContain('\u001b[')
    const plain = atTerminal('olga', ['op', 'list'], { NO_COLOR: '1' })
    expect(await plain.code).toBe(0)
    expect(plain.screen()).not.toContain('\u001b[')
  })

  it('a plan is shown, asked about and started; a no sends nothing', async () => {
    const shown = await plan()
    const no = atTerminal('olga', ['plan', 'start', shown.plan_id])
    await no.shows('Start this? [y/N]')
    expect(no.screen()).toContain(shown.plan_hash)
    no.type('n')
    expect(await no.code).toBe(1)
    expect(no.screen()).toContain('Nothing was sent.')

    // Between what is shown and the answer somebody else is first.
    const late = atTerminal('olga', ['plan', 'start', shown.plan_id])
    await late.shows('Start this? [y/N]')
    expect(await start(shown)).not.toBe('')
    late.type('y')
    expect(await late.code).toBe(7)
    expect(late.screen()).toMatch(/refused .*\w+\/\w+: .*\r?\n(.*\r?\n)*hint /)
  })

  it('a gate that was decided while it was being read is refused, and approved when it still waits', async () => {
    const id = await start(await plan())
    await signalbox('olga', ['op', 'wait', id, '--timeout', '60s'])
    const gone = await start(await plan())
    await signalbox('olga', ['op', 'wait', gone, '--timeout', '60s'])

    const late = atTerminal('eva', ['gate', 'approve', 'go', '--op', gone])
    await late.shows('Approve this? [y/N]')
    expect(await signalbox('olga', ['op', 'cancel', gone, '--reason', 'not wanted', '--yes'])).toMatchObject({
      code: 0,
    })
    await signalbox('olga', ['op', 'wait', gone, '--timeout', '60s'])
    late.type('y')
    expect(await late.code).toBe(7)
    expect(late.screen()).toMatch(/refused .*(gate_not_waiting|invalid_transition|operation)/)

    const yes = atTerminal('eva', ['gate', 'approve', 'go', '--op', id])
    await yes.shows('Approve this? [y/N]')
    expect(yes.screen()).toContain('digest sha256:')
    yes.type('y')
    expect(await yes.code).toBe(0)
    expect(yes.screen()).toContain('APPROVED')
  })
})
