import { lookup } from 'node:dns'
import { isIP } from 'node:net'
import { Agent, buildConnector } from 'undici'
import { bareHost } from './addresses.ts'
import { isAllowed, type Rule } from './egress.ts'

const CONNECT_MS = 5000

/** A destination that no rule allows. */
export class Denied extends Error {}

/** The connection was not made, so no byte of the request was sent. */
export class Unreachable extends Error {}

/**
 * Connections of one caller. Every address is checked against its rules in the connect step itself, so no redirect,
 * other spelling or changed DNS answer leads anywhere else. It uses no proxy from the environment and keeps no
 * connection: if the target closed a kept one in the meantime, that would look like a cut.
 */
export const createAgent = (caller: string, rulesFor: (url: URL) => readonly Rule[]): Agent => {
  const connect = buildConnector({ timeout: CONNECT_MS, autoSelectFamily: false })
  return new Agent({
    connect: (options, callback) => {
      const host = bareHost(options.hostname)
      const port = options.port ? `:${options.port}` : ''
      const authority = `${isIP(host) === 6 ? `[${host}]` : host}${port}`
      const rules = rulesFor(new URL(`${options.protocol}//${authority}/`))
      if (rules.length === 0) return callback(new Denied(`${caller} may not call ${authority}`), null)
      resolve(host, (error, address) => {
        if (error) return callback(new Unreachable(error.message, { cause: error }), null)
        if (!isAllowed(rules, address))
          return callback(new Denied(`${caller} may not call ${authority}: it resolves to ${address}`), null)
        connect({ ...options, hostname: address, servername: isIP(host) ? '' : host }, (...made) => {
          const [failure, socket] = made
          if (failure) callback(new Unreachable(failure.message, { cause: failure }), null)
          else callback(null, socket)
        })
      })
    },
    headersTimeout: 0,
    bodyTimeout: 0,
    pipelining: 0,
  })
}

const resolve = (host: string, done: (error: Error | null, address: string) => void) => {
  if (isIP(host)) return done(null, host)
  lookup(host, { verbatim: true }, (error, address) => done(error, address))
}
