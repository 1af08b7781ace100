// The packed @signalbox/client, installed alone: signs in, lists, approves, survives an expired token.
import { createSignalbox, ProblemError, read } from '@signalbox/client'

const { SIGNALBOX_URL: url = '', PASSWORD: password = '', OPERATION_ID: operation_id = '' } = process.env

const signIn = async () => {
  const body = { grant_type: /** @type {const} */ ('password'), username: 'zoe', password }
  return (await read(createSignalbox({ url }).POST('/v1/token', { body }))).access_token
}

/** @param {boolean} holds @param {string} what */
const expect = (holds, what) => {
  if (!holds) throw new Error(`not so: ${what}`)
}

let token = await signIn()
let renewed = 0
const signalbox = createSignalbox({
  url,
  token: () => token,
  renew: async () => {
    renewed += 1
    token = await signIn()
    return token
  },
})

const waiting = async () => {
  const { items } = await read(signalbox.GET('/api/v1/gates', { params: { query: { for: 'me' } } }))
  return items.find((gate) => gate.operation_id === operation_id)?.gate_id
}
let gate_id = await waiting()
for (let tries = 0; gate_id === undefined && tries < 120; tries += 1) {
  await new Promise((resolve) => setTimeout(resolve, 250))
  gate_id = await waiting()
}
expect(gate_id !== undefined, 'the gate is in the inbox')
const path = { operation_id, gate_id: String(gate_id) }
const gate = await read(signalbox.GET('/api/v1/operations/{operation_id}/gates/{gate_id}', { params: { path } }))
const approve = () =>
  read(
    signalbox.POST('/api/v1/operations/{operation_id}/gates/{gate_id}/approve', {
      params: { path },
      body: { reviewed_digest: gate.digest, round: gate.round },
    }),
  )
const approved = await approve()
expect('status' in approved && approved.status === 'approved', 'the gate is approved')
const again = await approve().catch((/** @type {unknown} */ error) => error)
expect(again instanceof ProblemError && again.problem.category === 'gate_not_waiting', 'a second approval is refused')

await read(signalbox.POST('/auth/logout')).catch(() => undefined)
const me = await read(signalbox.GET('/api/v1/users/me'))
expect(me.username === 'zoe' && renewed === 1, 'a token that was ended is renewed once')
console.log(`the packed client signed in, listed, approved and renewed its token, on Node ${process.version}`)
