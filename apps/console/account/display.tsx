import { useEffect, useState, useSyncExternalStore } from 'react'
import { Filter } from '../forms/select.tsx'
import type { Zone } from '../kit/format.ts'
import { type Display, setDisplay, useDisplay } from '../kit/prefs.ts'
import { isUnkept, onKept, setLanguage, takeKept } from '../queries/kept.ts'
import { Page, PageHead } from '../ui/page.tsx'
import { tAccount } from '../words/account.ts'

/** The person's display settings, which apply on all of their devices. */
export const DisplayPage = () => {
  const display = useDisplay()
  const words = tAccount.display
  const [language, setChosen] = useState(document.documentElement.lang)
  const unkept = useSyncExternalStore(onKept, isUnkept)
  useEffect(() => void takeKept(), [])
  const choices = {
    theme: [words.theme, words.themes],
    contrast: [words.contrast, words.contrasts],
    density: [words.density, words.densities],
    times: [words.times, words.all_times],
    zone: [words.zone, words.zones],
  } as const
  return (
    <Page>
      <PageHead title={words.title} note={words.note} />
      <p role="status">{unkept ? words.not_kept : ''}</p>
      <div className="card flex max-w-wide flex-col gap-6 p-6">
        <Choice
          name="language"
          label={words.language}
          words={words.languages}
          value={language}
          choose={(choice) => {
            setChosen(choice)
            void setLanguage(choice)
          }}
        />
        {(Object.keys(choices) as (keyof typeof choices)[]).map((name) => (
          <Choice
            key={name}
            name={name}
            label={choices[name][0]}
            words={choices[name][1]}
            value={display[name]}
            choose={setLook(name)}
          />
        ))}
        <OtherZone zone={display.zone} />
        <label className="flex items-center gap-2">
          <input
            type="checkbox"
            checked={display.shortcuts}
            onChange={(event) => setDisplay({ shortcuts: event.target.checked })}
          />
          {words.shortcuts}
        </label>
      </div>
    </Page>
  )
}

const setLook =
  (name: keyof Display) =>
  (choice: string): void =>
    setDisplay({ [name]: choice })

const ZONES = Intl.supportedValuesOf('timeZone')
const isListed = (zone: Zone) => zone !== 'utc' && zone !== 'local'

/** UTC, the zone of the device, or any other. */
const OtherZone = ({ zone }: { zone: Zone }) => (
  <Filter
    label={tAccount.display.other_zone}
    choices={[...new Set(['', zone, ...ZONES])].filter(isListed).map((name) => [name, name || '–'])}
    value={isListed(zone) ? zone : ''}
    change={(name) => setDisplay({ zone: name || 'utc' })}
  />
)

const Choice = <Key extends string>({
  name,
  label,
  words,
  value,
  choose,
}: {
  name: string
  label: string
  words: Record<Key, string>
  value: string
  choose: (choice: Key) => void
}) => (
  <fieldset>
    <legend className="label">{label}</legend>
    <div className="flex flex-wrap gap-x-6 gap-y-2">
      {(Object.keys(words) as Key[]).map((choice) => (
        <label key={choice} className="flex min-h-6 items-center gap-2">
          <input type="radio" name={name} checked={choice === value} onChange={() => choose(choice)} />
          {words[choice]}
        </label>
      ))}
    </div>
  </fieldset>
)
