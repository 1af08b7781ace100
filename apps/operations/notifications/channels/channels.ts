import { createAgent } from '../../../shared/web/agent.ts'
import { fits, mayReach, PUBLIC, type Rule, ruleOf } from '../../../shared/web/egress.ts'
import type { OperationsConfig } from '../../config.ts'
import type { Message } from '../messages/decisions.ts'
import { createMail } from './mail.ts'
import { createPush, type Push } from './push.ts'
import type { Reach, Sent } from './reach.ts'
import { callWebhook } from './webhook.ts'

export type Channels = {
  console_url: string
  /** Whether mail has a server or, in development, a folder. */
  mail: boolean
  /** Undefined without a key that signs pushes. */
  push: Push | undefined
  /** Whether a webhook may use this URL, judged by the URL alone. */
  mayCall: (url: URL) => boolean
  send: (reach: Reach, message: Message, at: Date) => Promise<Sent>
  close: () => Promise<void>
}

/** This process's notification channels; undefined unless NOTIFY__ENABLED. */
export const createChannels = (config: OperationsConfig): Channels | undefined => {
  if (!config.NOTIFY__ENABLED) return undefined
  const console_url = new URL(config.GATEWAY__HTTP__PUBLIC_ORIGIN).origin
  const rules = [PUBLIC, ...config.NOTIFY__EGRESS__ALLOW.map((one) => ruleOf('NOTIFY__EGRESS__ALLOW', one))]
  const rulesFor = (url: URL): Rule[] => rules.filter((rule) => fits(rule, url))
  const agent = createAgent('a notification', rulesFor)
  const mail = createMail(config)
  const push = createPush(config, console_url, rulesFor)
  return {
    console_url,
    mail: mail !== undefined,
    push,
    mayCall: (url) => mayReach(rulesFor(url), url),
    send: async ({ kind, ...reach }, message, at) => {
      if (kind === 'email') return mail?.send(reach, message) ?? { error: 'There is no mail server.', final: true }
      if (kind === 'push')
        return push?.send(reach, message, at) ?? { error: 'There is no key for pushes.', final: true }
      return callWebhook(agent, { ...reach, kind }, message, at)
    },
    close: async () => {
      mail?.close()
      await Promise.all([agent.close(), push?.close()])
    },
  }
}
