import { currentUser } from '../session/token.ts'
import { t } from '../words/index.ts'

/** A person, a service or the system itself, by name; the full id appears on hover. */
export const Person = ({ who }: { who: { id: string; name: string } }) => <span title={who.id}>{nameOf(who)}</span>

export const nameOf = ({ id, name }: { id: string; name: string }): string => (id === 'engine' ? t.engine : name || id)

export const isMe = (who: { id: string }): boolean => who.id.replace(/^user:/, '') === currentUser()?.user_id
