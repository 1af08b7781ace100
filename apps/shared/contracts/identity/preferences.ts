import Type, { type Static } from 'typebox'
import { Closed, OptionalText } from '../shapes.ts'

const one = <Word extends string>(words: readonly Word[]) => Type.Optional(Type.Enum([...words]))
const EXAMPLE = { theme: 'dark', density: 'compact', zone: 'Europe/Berlin', language: 'de' }

/** A person's console preferences, for every device (console.md 9). The browser decides each member that is not set. */
export const Preferences = Closed(
  {
    theme: one(['system', 'light', 'dark']),
    contrast: one(['system', 'more']),
    density: one(['comfortable', 'compact']),
    times: one(['relative', 'exact']),
    zone: OptionalText({
      minLength: 1,
      maxLength: 64,
      description: 'utc, local (the zone of the device), or an IANA time zone.',
      examples: ['Europe/Berlin'],
    }),
    language: one(['en', 'de']),
    shortcuts: Type.Optional(Type.Boolean({ description: 'Whether single keys are shortcuts.' })),
    guide: Type.Optional(Type.Boolean({ description: 'Whether the inbox shows the guide of newcomers.' })),
  },
  { examples: [EXAMPLE] },
)
export type Preferences = Static<typeof Preferences>
