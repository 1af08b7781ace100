import type { SecurityFact } from '../../../../db/operations/tables/index.ts'
import type { SecurityEvent } from '../../../shared/contracts/notifications/notifications.ts'
import { line, type Message, plain, type Style } from './decisions.ts'
import { ANYONE, timeFor, wordsFor } from './words.ts'

/** The page for messages about more than one’s own account. */
const PATHS: { [E in SecurityEvent]?: string } = {
  'key.ending': '/admin/service-accounts',
  'key.seen': '/admin/service-accounts',
  'key.unused': '/admin/service-accounts',
  'break_glass.used': '/admin/users',
  'spray.suspected': '/audit',
  'change.waiting': '/admin/changes',
  'gate.bypassed': '/operations',
}
const OWN_PATH = '/settings/sessions'
/** As identity states the end of a credential, after its name. */
const UNTIL = /, until (\d{4}-\d\d-\d\dT[\d:.]+Z)$/

/** Whether an event is about the reader's own account, so that ending their sessions helps. */
export const isOwn = (event: SecurityEvent): boolean => PATHS[event] === undefined

/**
 * What happened, when and from where, and the way to act on it. Opening a link changes no state. `sign_out` is a token
 * behind # of one more link: the page that it opens can only end all sessions of the reader.
 */
export const securityMessage = (fact: SecurityFact, style: Style & { sign_out?: string }): Message => {
  const { console_url, content, reader = ANYONE, sign_out } = style
  const words = wordsFor(reader)
  if (!(fact.event in words.events)) throw new Error(`a newer build has words for ${fact.event}`)
  const { event, at, ip_address, user_agent, about, path, last } = fact
  const where = [ip_address && words.address(line(ip_address)), user_agent && words.client(line(user_agent))]
  const said = [words.time(timeFor(reader, at)), ...where.filter((one) => one)]
  const remedy = words.remedies[event] ?? words.own
  const link = `${console_url}${path ?? PATHS[event] ?? OWN_PATH}`
  const named =
    about &&
    line(about).replace(UNTIL, (end, time: string) =>
      Number.isNaN(Date.parse(time)) ? end : words.until(timeFor(reader, time)),
    )
  const shown = named === undefined ? said : [named, ...(event === 'key.ending' || event === 'key.unused' ? [] : said)]
  const details = content === 'titles' ? shown.join('\n') : undefined
  const more_today = last && words.last
  const way = sign_out ? words.sign_out(`${console_url}/sign-out#${sign_out}`) : `${remedy}\n${link}`
  const text = [words.events[event], details, more_today, way].filter(Boolean).join('\n\n')
  const more = details && { details, ...(named !== undefined && { about: named }) }
  return { ...plain(words.events[event], text, link, reader, event), ...more }
}
