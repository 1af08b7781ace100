/** What each app may touch in the stores that all share: its own keys in Redis, its own subjects on NATS. */

const COMMANDS =
  '-@all +@read +@write +@connection +@transaction +@scripting +@stream +@blocking +@pubsub +info +config|get +time'
const HEALTH_PART = '~ops:part:*'

/** The ACL of an app's Redis account: only session reads sessions; the gateway has limits and the denylist. */
export const redisRules = (app: string): string => {
  const keys: Record<string, string> = {
    session: '~*',
    gateway: `~deny:* ~ub:* ~lim:* ~auth:epoch ~ops:disk:* ${HEALTH_PART}`,
    relay: `~auth:* ~deny:* ~ub:* ${HEALTH_PART}`,
  }
  return `${keys[app] ?? HEALTH_PART} ${COMMANDS}`
}

/** The subjects an app may not publish: what the outboxes promise goes out through the relay alone. */
export const relayOnlySubjects = (app: string): string[] =>
  app === 'relay' ? [] : ['auth.>', 'catalog.>', 'operations.>', '$JS.API.STREAM.DELETE.>', '$JS.API.STREAM.PURGE.>']
