import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { until } from '../../support/until.ts'
import { atTerminal, json, passwords, signalbox, stack } from '../client.ts'

describe('at a terminal', () => {
  /** A started operation with one gate, or its plan before the start. */
  const plan = async () => {
    const created = await signalbox('olga', ['intent', 'create', '-f', 'intent.json', '-o', 'id'])
    return json<{ plan_id: string; plan_hash: string }>(
      await signalbox('olga', ['plan', 'preview', created.out.trim(), '-o', 'json']),
    )
  }
  const start = async ({ plan_id, plan_hash }: { plan_id: string; plan_hash: string }) =>
    (await signalbox('olga', ['plan', 'start', plan_id, '--yes', '--digest', plan_hash, '-o', 'id'])).out.trim()

  it('asks for a password without showing it and colors states; NO_COLOR turns colors off', async () => {
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

  it('shows a plan, asks and starts it; a no sends nothing', async () => {
    const shown = await plan()
    const no = atTerminal('olga', ['plan', 'start', shown.plan_id])
    await no.shows('Start this? [y/N]')
    expect(no.screen()).toContain(shown.plan_hash)
    no.type('n')
    expect(await no.code).toBe(1)
    expect(no.screen()).toContain('Nothing was sent.')

    // Another person acts between the display and the answer.
    const late = atTerminal('olga', ['plan', 'start', shown.plan_id])
    await late.shows('Start this? [y/N]')
    expect(await start(shown)).not.toBe('')
    late.type('y')
    expect(await late.code).toBe(7)
    expect(late.screen()).toMatch(/refused .*\w+\/\w+: .*\r?\n(.*\r?\n)*hint /)
  })

  it('a gate decided during the review is refused, and approved if it is still waiting', async () => {
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

  it('a watched operation is one table redrawn until it ends; Ctrl-C restores the terminal', async () => {
    const id = await start(await plan())
    await signalbox('olga', ['op', 'wait', id, '--timeout', '60s'])
    const at = atTerminal('olga', ['op', 'watch', id])
    await at.shows(`signalbox gate show go --op ${id.slice(-6)}`)
    at.type('\u0003')
    expect(await at.code).toBe(130)
    expect(at.screen()).toContain(`The operation continues. Watch again: signalbox op watch ${id.slice(-6)}`)
    // The cursor is visible again, and lines wrap.
    expect(at.screen().lastIndexOf('\u001b[?25h')).toBeGreaterThan(at.screen().lastIndexOf('\u001b[?25l'))
    expect(at.screen().lastIndexOf('\u001b[?7h')).toBeGreaterThan(at.screen().lastIndexOf('\u001b[?7l'))

    const again = atTerminal('olga', ['op', 'watch', id])
    await again.shows('WAITING')
    const gate = json<{ digest: string }>(await signalbox('eva', ['gate', 'show', 'go', '--op', id, '-o', 'json']))
    await signalbox('eva', ['gate', 'approve', 'go', '--op', id, '--yes', '--digest', gate.digest])
    expect(await again.code).toBe(0)
    // Redrawn by moving up over the existing lines, never scrolled away.
    const drawn = again.screen().split(/\[\d+A/)
    expect(drawn.length).toBeGreaterThan(1)
    const last = drawn.at(-1)
    expect(last).toContain('2 of 2 done')
    expect(last).toMatch(/SUCCEEDED.* {3}two steps and a gate/)
  })

  it('resumes from the last received event after the connection was cut', async () => {
    const id = await start(await plan())
    await signalbox('olga', ['op', 'wait', id, '--timeout', '60s'])
    const line = await cutLine(stack.gateway_url)
    await signalbox('olga', ['login', 'olga', '--password-stdin'], `${passwords.get('olga')}\n`, {
      SIGNALBOX_URL: line.url,
    })
    const watching = signalbox('olga', ['op', 'watch', id], '', { SIGNALBOX_URL: line.url })
    await until(() => line.answered() > 3, { what: 'the first news' })
    line.cut()
    const gate = json<{ digest: string }>(await signalbox('eva', ['gate', 'show', 'go', '--op', id, '-o', 'json']))
    await signalbox('eva', ['gate', 'approve', 'go', '--op', id, '--yes', '--digest', gate.digest])
    await signalbox('olga', ['op', 'wait', id, '--timeout', '60s'])
    line.mend()
    const { code, out, err } = await watching
    await line.close()
    expect(code).toBe(0)
    expect(err).toMatch(/did not answer: .* Trying again until it answers\.\nIt answers again\./)
    // Nothing is reported twice, and no event in the meantime is left out.
    const lines = out.trim().split('\n')
    expect(new Set(lines).size).toBe(lines.length)
    expect(lines.filter((text) => text.includes('node.succeeded'))).toHaveLength(2)
    expect(lines.at(-1)).toMatch(/^SUCCEEDED/)
  })
})

/** A connection to the gateway that can be cut: then no one answers at its address. */
const cutLine = async (to: string) => {
  const { hostname, port } = new URL(to)
  const open = new Set<Socket>()
  let answered = 0
  let whole = true
  const server = createServer((socket) => {
    if (!whole) return void socket.destroy()
    const far = connect(Number(port), hostname)
    for (const one of [socket, far]) open.add(one.on('error', () => {}))
    far.on('data', () => {
      answered += 1
    })
    socket.pipe(far).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answered: () => answered,
    cut: () => {
      whole = false
      for (const socket of open) socket.destroy()
    },
    mend: () => {
      whole = true
    },
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of open) socket.destroy()
        server.close(() => resolve())
      }),
  }
}
