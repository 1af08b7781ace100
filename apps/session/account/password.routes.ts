import Type from 'typebox'
import { allow } from '../../shared/auth/http.ts'
import { TokenReply } from '../../shared/contracts/session/tokens.ts'
import { CommandHeaders, markReplayed, routes } from '../../shared/http/routes.ts'
import type { SessionDeps } from '../deps.ts'
import { commandOf, runOnce } from '../sessions/commands.ts'
import { Password, refuseLongPassword } from '../token/grants.ts'
import { type Changed, changePassword, modeOfPerson, tokensAfterChange } from '../token/password.ts'
import { tokensOf } from '../token/replies.ts'
import { contextOf } from '../token/routes.ts'

const PasswordBody = Type.Object(
  { current_password: Password, new_password: Password },
  {
    additionalProperties: false,
    examples: [{ current_password: 'Tr0mbone-Glacier-Napkin', new_password: 'Walnut-Harbor-77-Quilt' }],
  },
)

/** The caller's password. It is here and not in identity because a change ends sessions. */
export const passwordRoutes = routes<SessionDeps>('password', (app, { deps }) => {
  app.post('/v1/users/me/password', {
    preHandler: allow('self', { kind: 'W' }),
    operationId: 'changePassword',
    summary: 'Change your password',
    description: 'Changes the password, ends all other sessions and gives this one new tokens.',
    headers: CommandHeaders,
    body: PasswordBody,
    response: { 200: Type.Partial(TokenReply) },
    handler: async (req, reply) => {
      refuseLongPassword(req.body.current_password)
      refuseLongPassword(req.body.new_password)
      const { caller } = req
      const mode = modeOfPerson(caller)
      const request = { ...contextOf(req), caller }
      const command = commandOf(req)
      const change = { ...request, ...req.body, change_id: command.key }
      const run = async () => ({ status: 200, body: await changePassword(deps, change) })
      const answer = await runOnce(deps, command, run, { needs_row: true, hashes: true })
      markReplayed(reply, answer)
      const { password_version, ...revoked } = JSON.parse(answer.body.toString('utf8')) as Changed
      const pair = await tokensAfterChange(deps, request, { change_id: command.key, password_version })
      if (!pair) return revoked
      return { ...tokensOf(deps, reply, { ...pair, session_id: caller.session_id }, mode), ...revoked }
    },
  })
})
