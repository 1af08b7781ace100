import type { Static } from 'typebox'
import { factLines } from '../../shared/contracts/identity/change-facts.ts'
import type {
  ChangeView,
  DecidedChange,
  EnrolmentHalf,
  Pending as PendingReply,
} from '../../shared/contracts/identity/changes.ts'
import { type Command, type Context, isWholeId, wholeId } from '../command.ts'
import { missing } from '../errors.ts'
import { confirm } from '../terminal/ask.ts'
import { word } from '../terminal/output.ts'

export type Pending = Static<typeof PendingReply>
type Change = ChangeView
type Decided = Static<typeof DecidedChange>
type Half = Static<typeof EnrolmentHalf>

const PATH = '/api/v1/admin/changes'

export const isPending = (made: object | undefined): made is Pending => made !== undefined && 'change' in made

/** Says that a second administrator must confirm the change, and how. */
export const waiting = ({ out }: Context, made: Pending): void =>
  out.one(
    made,
    ({ change }) => change.id,
    ({ change }) => [
      `Waiting for another administrator until ${change.expires_at}: ${change.id}`,
      `To confirm, they run: signalbox user confirm ${change.id}`,
    ],
  )

/** To append to a note: says that sessions and tokens may last for another moment. */
export const endingOf = (made: { sessions?: string } | string): string =>
  typeof made !== 'string' && made.sessions === 'pending' ? ' Its sessions and tokens are still being ended.' : ''

/** Warns if no second administrator checks the changes. */
export const tellControl = async ({ api, out }: Context): Promise<void> => {
  const { control } = await api.get<{ control: { notice: string | null } }>(`${PATH}?page_size=1`)
  if (control.notice) out.note(control.notice)
}

/** The effect of a change, in one line. */
const sentence = ({ kind, subject, request }: Change): string => {
  const roles = subject.gives.join(', ') || 'no role'
  const words: Record<string, string> = {
    'user.create': `new account ${subject.name} with ${roles}`,
    'user.enable': `enable ${subject.name}, who has ${roles}`,
    'user.reset': `new enrolment link for ${subject.name}, who has ${roles}`,
    'user.recover': `recovery of ${subject.name}, who has ${roles}: ends all sessions and credentials`,
    'grant.create': `${roles} for ${subject.name}${subject.members.length > 0 ? ` and its ${subject.members.length} members` : ''}`,
    'machine.credential': `new credential (${request.kind}) for ${subject.name}, which has ${roles}`,
    'member.add': `${subject.name} into ${request.group_key}, which gives ${roles}`,
  }
  return words[kind] ?? kind
}

type People = Map<string, string>
const requestersOf = async ({ api }: Context, changes: Change[]): Promise<People> => {
  const people: People = new Map()
  for (const id of new Set(changes.map(({ requested_by }) => requested_by)))
    people.set(id, isWholeId(id) ? (await api.get<{ username: string }>(`/api/v1/admin/users/${id}`)).username : id)
  return people
}

const find = async (context: Context, given: string): Promise<Change> => {
  const id = await wholeId<Change>(context, given, PATH, (change) => change.id)
  const changes = await context.api.list<Change>(PATH, { page_size: '500' }, true)
  const found = changes.find((change) => change.id === id)
  if (found) return found
  throw missing(`There is no change ${JSON.stringify(given)}.`)
}

const showHalf = async ({ api, out }: Context, id: string): Promise<void> =>
  out.one(
    await api.post<Half>(`${PATH}/${id}/half`, undefined),
    ({ half }) => half.url,
    ({ half }) => [
      `The ${half.part} half of the link: ${half.url}`,
      'Hand it to the person yourself, never to the other administrator.',
    ],
  )

export const changeCommands: Command[] = [
  {
    name: 'user changes',
    about: 'Changes that need two administrators, the newest first; --status narrows them.',
    examples: ['user changes --status pending'],
    options: {
      status: {
        type: 'string',
        choices: ['pending', 'confirmed', 'rejected', 'withdrawn', 'expired'],
        about: 'changes of this status only',
      },
    },
    run: async (context, _, { status }) => {
      const query = { status: typeof status === 'string' ? status : undefined }
      const changes = await context.api.list<Change>(PATH, query, context.all)
      const people = await requestersOf(context, changes)
      const facts = new Map(changes.map((change) => [change.id, factLines(change)]))
      context.out.list(changes, 'id', [
        ['change', (change) => [sentence(change), ...(facts.get(change.id) ?? [])].join('; ')],
        ['status', (change) => word(change.status)],
        ['requested by', ({ requested_by }) => people.get(requested_by)],
        ['until', ({ expires_at }) => expires_at],
        ['id', ({ id }) => id],
      ])
      await tellControl(context)
    },
  },
  {
    name: 'user confirm',
    takes: 'CHANGE',
    about: 'Makes a change that another administrator requested, and prints your half of the link if it makes one.',
    examples: ['user confirm 77b0aa'],
    run: async (context, [given = '']) => {
      const change = await find(context, given)
      const people = await requestersOf(context, [change])
      context.out.review(change, (shown) => [
        `${people.get(change.requested_by)} requested: ${sentence(shown)}`,
        // Of the change itself: what a terminal would hide is spelled out.
        ...factLines(change).map((line) => `  ${line}`),
      ])
      if (!context.yes) await confirm(`Confirm: ${sentence(change)}?`)
      const { digest } = change
      const made = await context.api.post<Decided>(`${PATH}/${change.id}/confirm`, { digest })
      const done = made.change
      context.out.note(`Confirmed: ${sentence(done)}.${endingOf(made)}`)
      if (done.user_id !== null) await showHalf(context, done.id)
    },
  },
  ending('reject', 'Ends a change of another administrator.'),
  ending('withdraw', 'Ends a change that you requested.'),
  {
    name: 'user half',
    takes: 'CHANGE',
    about: 'Prints your half of the enrolment link that a confirmed change makes.',
    examples: ['user half 77b0aa'],
    run: async (context, [given = '']) => showHalf(context, (await find(context, given)).id),
  },
]

function ending(verb: 'reject' | 'withdraw', about: string): Command {
  return {
    name: `user ${verb}`,
    takes: 'CHANGE',
    about,
    examples: [`user ${verb} 77b0aa`],
    run: async (context: Context, [given = '']: string[]) => {
      const change = await find(context, given)
      await context.api.post(`${PATH}/${change.id}/${verb}`, undefined)
      context.out.note(`${word(verb === 'reject' ? 'rejected' : 'withdrawn')}: ${sentence(change)}.`)
    },
  }
}
