import type { FastifyRequest } from 'fastify'
import Type from 'typebox'
import { refuseStaleAuth } from '../../shared/auth/caller.ts'
import { allow } from '../../shared/auth/http.ts'
import { PageQuery } from '../../shared/contracts/identity/users.ts'
import { SessionList } from '../../shared/contracts/session/sessions.ts'
import { text } from '../../shared/contracts/shapes.ts'
import { sha256Hex } from '../../shared/data/digest.ts'
import { AppError } from '../../shared/errors.ts'
import { rowsFrom } from '../../shared/http/pages.ts'
import { CommandHeaders, routes, sendStored } from '../../shared/http/routes.ts'
import type { SessionDeps } from '../deps.ts'
import type { SessionRecord } from '../store/store.ts'
import { answerOnce, commandOf, NO_CONTENT, runOnce } from './commands.ts'
import { endOwnSession, endUserSessions, isOver, viewOf } from './end.ts'

const SessionParams = Type.Object({ session_id: text('0195f0c2-0000-7000-8000-000000000009', { maxLength: 64 }) })
const LINK_INVALID = 'This link is invalid, used or expired.'
const Revoked = Type.Object({ revoked: Type.Integer() })
const SignOut = Type.Object(
  {
    token: Type.String({
      minLength: 1,
      maxLength: 128,
      description: 'The part after # in the link of a security message.',
      examples: ['so1.q83vEjRWeJq83vEjRWeJq83vEjRWeJq83vEjRWeJq80'],
    }),
  },
  { additionalProperties: false },
)

export const byUser = (req: FastifyRequest) =>
  ({ actor_type: 'user', actor_id: req.caller.user_id, request_id: String(req.id) }) as const

/** A user has at most SESSION__CAP__PER_USER, so without a size one page holds them all. */
export const SessionsQuery = Type.Object({
  ...PageQuery.properties,
  page_size: Type.Integer({ minimum: 1, maximum: 500, default: 100 }),
})

/** The sessions of a user that have not ended, newest first. */
export const listOf = async (
  deps: SessionDeps,
  { user_id, current }: { user_id: string; current?: string | undefined },
  { page_size, page_token }: Type.Static<typeof SessionsQuery>,
) => {
  const list = { route: 'sessions', user_id }
  const live = (await deps.store.list(user_id)).filter((one) => !isOver(deps, one))
  // The store keeps a machine's sessions in the order of their last use.
  live.sort((one, other) => isAfter(one, keyOf(other)))
  const rows = rowsFrom(live, deps.pages.place(page_token, list), page_size, isAfter)
  const { items, next_page_token } = deps.pages.cut(rows, page_size, list, keyOf)
  return { items: items.map((one) => viewOf(one, current)), next_page_token, as_of: deps.clock.now().toISOString() }
}

const keyOf = ({ created_at, session_id }: SessionRecord) => [String(created_at), session_id]
/** Positive if the session comes after this key. */
const isAfter = ({ created_at, session_id }: SessionRecord, [at, id]: (string | null)[]) =>
  Number(at) - created_at || (session_id < String(id) ? 1 : -1)

/** A person must have signed in recently to end their other sessions (ASVS 7.5.2). An administrator may at any time. */
const refuseUnconfirmed = ({ clock, config }: SessionDeps, { caller }: FastifyRequest): void => {
  const stale = refuseStaleAuth(caller, config.AUTH__REAUTH__MAX_AGE_S, clock.now())
  if (stale) throw stale
}

export const sessionsRoutes = routes<SessionDeps>('sessions', (app, { deps }) => {
  app.get('/v1/sessions', {
    preHandler: allow('self', { kind: 'R' }),
    operationId: 'listSessions',
    summary: 'List your sessions',
    description: 'The sessions of the caller, newest first.',
    querystring: SessionsQuery,
    response: { 200: SessionList },
    handler: ({ caller: { user_id, session_id }, query }) => listOf(deps, { user_id, current: session_id }, query),
  })

  app.delete('/v1/sessions/:session_id', {
    preHandler: allow('self', { kind: 'S' }),
    operationId: 'revokeSession',
    summary: 'End one of your sessions',
    'x-errors': [403],
    description:
      'Ends one of the caller’s sessions; ending the current one signs out. Ending another one takes a recent sign-in.',
    params: SessionParams,
    headers: CommandHeaders,
    response: { 204: Type.Null() },
    handler: async (req, reply) => {
      const { user_id, session_id, mode } = req.caller
      const own = req.params.session_id === session_id
      const answer = await runOnce(deps, commandOf(req), async () => {
        if (!own) refuseUnconfirmed(deps, req)
        await endOwnSession(deps, { user_id, session_id: req.params.session_id }, 'logout', byUser(req))
        return NO_CONTENT
      })
      if (own && mode === 'cookie') reply.header('set-cookie', deps.cookies.expired())
      return sendStored(reply, answer)
    },
  })

  app.post('/v1/sessions/revoke-others', {
    preHandler: allow('self', { kind: 'S' }),
    operationId: 'revokeOtherSessions',
    summary: 'End your other sessions',
    'x-errors': [403],
    description: 'Ends all other sessions of the caller, who must have signed in recently.',
    headers: CommandHeaders,
    response: { 200: Revoked },
    handler: (req, reply) =>
      answerOnce(deps, req, reply, async () => {
        refuseUnconfirmed(deps, req)
        const { user_id, session_id: keep_session_id } = req.caller
        const revoked = await endUserSessions(deps, { user_id, keep_session_id }, 'logout', byUser(req))
        return { status: 200, body: { revoked } }
      }),
  })

  app.post('/v1/sessions/sign-out', {
    preHandler: allow('none', { kind: 'S' }),
    operationId: 'signOutByLink',
    summary: 'End all sessions by a link',
    description:
      'Ends all sessions of the person to whom a security message was sent. Its link works once, within 24 hours, without a sign-in, and gives no other right.',
    headers: CommandHeaders,
    body: SignOut,
    response: { 200: Revoked },
    handler: async (req, reply) => {
      const { token } = req.body
      const command = commandOf(req, `link:${sha256Hex(token)}`)
      const answer = await runOnce(deps, command, async () => ({
        status: 200,
        body: { revoked: await signOutByLink(deps, token, String(req.id)) },
      }))
      return sendStored(reply, answer)
    },
  })
})

/** Whoever holds the link may be another reader of the person's mail, so it can only end sessions. */
const signOutByLink = async (deps: SessionDeps, token: string, request_id: string): Promise<number> => {
  const user_id = await deps.flows.signOutOf(token)
  if (user_id === undefined) throw new AppError('validation_error', 'sign_out_link_invalid', LINK_INVALID)
  const by = { actor_type: 'system', request_id } as const
  const revoked = await endUserSessions(deps, { user_id }, 'suspicious', by, { by: 'the link of a message' })
  await deps.flows.spendSignOut(token)
  return revoked
}
