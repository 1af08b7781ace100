import { STREAMS } from '../../shared/events/events.ts'

/** What each app may access in the shared stores: its own keys in Redis, its own subjects on NATS. */

const COMMANDS =
  '-@all +@read +@write +@connection +@transaction +@scripting +@stream +@blocking +@pubsub +info +config|get +time'
const HEALTH_PART = '~ops:part:*'

/** The ACL of an app's Redis account: only session reads sessions; the gateway has limits and the denylist. */
export const redisRules = (app: string): string => {
  const keys: Record<string, string> = {
    session: '~*',
    gateway: `~deny:* ~ub:* ~lim:* ~auth:epoch ~ops:disk:* %R~sid:* %R~old:* ${HEALTH_PART}`,
    relay: `~auth:* ~deny:* ~ub:* ${HEALTH_PART}`,
  }
  return `${keys[app] ?? HEALTH_PART} ${COMMANDS}`
}

/** Permissions of a NATS user, in the form of the server's configuration. */
export type NatsRights = {
  publish: { allow?: string[]; deny?: string[] }
  subscribe?: { allow?: string[]; deny?: string[] }
}

/** All subjects that lead to agents' work, whose messages carry the tokens with which its results are reported. */
const EXECUTION = {
  publish: [
    'execution.>',
    '$JS.API.STREAM.*.EXECUTION',
    '$JS.API.STREAM.MSG.*.EXECUTION',
    '$JS.API.DIRECT.GET.EXECUTION',
    '$JS.API.DIRECT.GET.EXECUTION.>',
    '$JS.API.CONSUMER.*.EXECUTION',
    '$JS.API.CONSUMER.*.EXECUTION.>',
    '$JS.API.CONSUMER.*.*.EXECUTION.>',
    '$JS.ACK.EXECUTION.>',
  ],
  subscribe: ['execution.>', '_INBOX_AGENT.>'],
}

/** Operations gives work to agents that poll over the API (operations.md 7.4): it takes messages, makes no consumer. */
const TAKES = new Set(['$JS.API.CONSUMER.*.EXECUTION.>', '$JS.API.CONSUMER.*.*.EXECUTION.>', '$JS.ACK.EXECUTION.>'])
const TAKER = [
  ...EXECUTION.publish.filter((subject) => !TAKES.has(subject)),
  ...['CREATE', 'DURABLE.CREATE', 'DELETE', 'PAUSE'].map((verb) => `$JS.API.CONSUMER.${verb}.EXECUTION.>`),
]

/**
 * The rights of an app: only the relay publishes outboxes and changes their streams, by which it could remove messages;
 * only the worker hands out work to agents, and changes that stream. Others make no stream: one of their own could
 * publish again, in the name of the server, to subjects that they may not use.
 */
export const natsRights = (app: string): NatsRights => {
  const outboxes = [
    'auth.>',
    'catalog.>',
    'operations.>',
    'audit.>',
    '$JS.API.STREAM.DELETE.>',
    '$JS.API.STREAM.PURGE.>',
    '$JS.API.STREAM.MSG.DELETE.>',
    ...(app === 'worker'
      ? Object.keys(STREAMS).map((name) => `$JS.API.STREAM.UPDATE.${name}`)
      : ['CREATE', 'UPDATE', 'RESTORE'].map((verb) => `$JS.API.STREAM.${verb}.>`)),
  ]
  const refused = app === 'worker' ? [] : app === 'operations' ? TAKER : EXECUTION.publish
  const publish = [...(app === 'relay' ? [] : outboxes), ...refused, 'agents.>']
  return {
    publish: { deny: publish },
    subscribe: { deny: app === 'worker' ? ['_INBOX_AGENT.>'] : EXECUTION.subscribe },
  }
}

/** Where an agent receives its answers: the inbox prefix of its connection. */
export const agentInbox = (pool: string): string => `_INBOX_AGENT.${pool}`

/** The rights of an external agent: take the work of its pool from the stream, receive stop requests, say that it lives. */
export const agentRights = (pool: string): NatsRights => ({
  publish: {
    allow: [
      `$JS.API.CONSUMER.INFO.EXECUTION.${pool}`,
      `$JS.API.CONSUMER.MSG.NEXT.EXECUTION.${pool}`,
      `$JS.ACK.EXECUTION.${pool}.>`,
      `agents.${pool}`,
    ],
  },
  subscribe: { allow: [`${agentInbox(pool)}.>`, `execution.${pool}.cancel`] },
})
