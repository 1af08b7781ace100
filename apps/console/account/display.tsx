import { useEffect, useState, useSyncExternalStore } from 'react'
import { Check, Filter, Radios } from '../forms/select.tsx'
import type { Zone } from '../kit/format.ts'
import { setDisplay, useDisplay } from '../kit/prefs.ts'
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
        <Radios
          className=""
          label={words.language}
          choices={entriesOf(words.languages)}
          value={language as keyof typeof words.languages}
          change={(choice) => {
            setChosen(choice)
            void setLanguage(choice)
          }}
        />
        {(Object.keys(choices) as (keyof typeof choices)[]).map((name) => (
          <Radios
            key={name}
            className=""
            label={choices[name][0]}
            choices={entriesOf<string>(choices[name][1])}
            value={display[name]}
            change={(choice) => setDisplay({ [name]: choice })}
          />
        ))}
        <OtherZone zone={display.zone} />
        <Check on={display.shortcuts} change={(shortcuts) => setDisplay({ shortcuts })}>
          {words.shortcuts}
        </Check>
      </div>
    </Page>
  )
}

const entriesOf = <Key extends string>(words: Partial<Record<Key, string>>) => Object.entries(words) as [Key, string][]

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
