import { type Display, setDisplay, useDisplay } from '../kit/prefs.ts'
import { Page, PageHead } from '../ui/page.tsx'
import { tAccount } from '../words/account.ts'

/** How this browser shows the console; saved in this browser only. */
export const DisplayPage = () => {
  const display = useDisplay()
  const words = tAccount.display
  const choices = {
    theme: [words.theme, words.themes],
    contrast: [words.contrast, words.contrasts],
    density: [words.density, words.densities],
    zone: [words.zone, words.zones],
  } as const
  return (
    <Page>
      <PageHead title={words.title} note={words.note} />
      <div className="card flex max-w-wide flex-col gap-6 p-6">
        <Choice
          name="language"
          label={words.language}
          words={words.languages}
          value={document.documentElement.lang}
          choose={setLanguage}
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

/** From the next load on, the gateway sends the page of this language. */
const setLanguage = (language: string): void => {
  const secure = location.protocol === 'https:' ? '; Secure' : ''
  // biome-ignore lint/suspicious/noDocumentCookie: not every browser in use has the Cookie Store API
  document.cookie = `language=${language}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`
  location.reload()
}

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
