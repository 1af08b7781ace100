import type { Pool } from 'undici'
import type { Stack } from '../../support/stack.ts'
import type { Bare } from '../lib/fork.ts'
import { median } from '../lib/graph.ts'
import { type Arm, closedLoop, send } from '../lib/load.ts'

/** Shared by the auth figures: the callers, and how their rounds are combined. */
export const ROUNDS = 3
export const REFRESHERS = 16

export type Physics = { count: number; seconds: number; cpu_ms: number }
export type Bench = {
  stack: Stack
  bares: {
    upstream: Bare<number>
    proxy: Bare<number>
    counting: Bare<number>
    crypto: Bare<string>
    /** The bare processes of a refresh, by name. */
    chain: Record<string, Bare<number>>
  }
  gateway: Pool
  proxy: Pool
  counting: Pool
  chain: Pool
  users: { username: string; password: string }[]
}
export type Tokens = { access_token: string; refresh_token: string }
/** A row of the table: figure, ours, baseline, ratio. */
export type Row = [string, string, string, string]

export const json = { 'content-type': 'application/json' }
let address = 0
/** Each login comes from its own address, as a trusted proxy reports it to the gateway. */
const fromAnywhere = () => {
  address += 1
  return { ...json, 'x-forwarded-for': `10.${(address >> 16) & 255}.${(address >> 8) & 255}.${address & 255}` }
}
export const login = ({ gateway }: Pick<Bench, 'gateway'>, username: string, password: string) =>
  send(gateway, {
    method: 'POST',
    path: '/auth/login',
    headers: fromAnywhere(),
    body: JSON.stringify({ username, password }),
  })
export const signIn = async (bench: Pick<Bench, 'gateway' | 'users'>, at: number): Promise<Tokens> => {
  const { username, password } = bench.users[at % bench.users.length] as Bench['users'][number]
  const reply = await login(bench, username, password)
  if (reply.status !== 200) throw new Error(`${username} cannot sign in: ${reply.status} ${reply.text}`)
  return JSON.parse(reply.text) as Tokens
}

export const refresher = (bench: Pick<Bench, 'gateway'>, sessions: Tokens[]) => async (worker: number) => {
  const session = sessions[worker] as Tokens
  const reply = await send(bench.gateway, {
    method: 'POST',
    path: '/auth/refresh',
    headers: json,
    body: JSON.stringify({ refresh_token: session.refresh_token }),
  })
  if (reply.status !== 200) return false
  Object.assign(session, JSON.parse(reply.text))
  return true
}
export const reader = (pool: Pool, path: string, access_token: string) => {
  const request = { method: 'GET', path, headers: { authorization: `Bearer ${access_token}`, accept: '*/*' } }
  return async () => (await send(pool, request)).status === 200
}

export const failIfAny = (what: string, { failed, count }: Arm) => {
  if (failed > 0) throw new Error(`${failed} of ${count} calls of "${what}" failed`)
}
export const of = <T>(arms: T[], pick: (arm: T) => number): number => median(arms.map(pick))
export const us = (ms: number) => `${(ms * 1000).toFixed(0)} us`

const WARM = 1500
/**
 * Runs until the engine has compiled the arms' code; the figures are those of a process that has worked for a while.
 */
export const warmUp = async (call: (worker: number) => Promise<boolean>) => {
  for (let done = 0, rounds = 0; done < WARM && rounds < 15; rounds++) {
    done += (await closedLoop(REFRESHERS, 500, call)).count
  }
}
