import { type Display, setDisplay, useDisplay } from '../kit/prefs.ts'
import { Page, PageHead } from '../ui/page.tsx'
import { tAccount } from '../words/account.ts'

/** How this browser shows the console; saved in this browser only. */
export const DisplayPage = () => {
  const display = useDisplay()
  return (
    <Page>
      <PageHead title={tAccount.display.title} note={tAccount.display.note} />
      <div className="card flex max-w-wide flex-col gap-6 p-6">
        <Choice name="theme" label={tAccount.display.theme} words={tAccount.display.themes} value={display.theme} />
        <Choice
          name="contrast"
          label={tAccount.display.contrast}
          words={tAccount.display.contrasts}
          value={display.contrast}
        />
        <Choice
          name="density"
          label={tAccount.display.density}
          words={tAccount.display.densities}
          value={display.density}
        />
        <Choice name="zone" label={tAccount.display.zone} words={tAccount.display.zones} value={display.zone} />
        <label className="flex items-center gap-2">
          <input
            type="checkbox"
            checked={display.shortcuts}
            onChange={(event) => setDisplay({ shortcuts: event.target.checked })}
          />
          {tAccount.display.shortcuts}
        </label>
      </div>
    </Page>
  )
}

const Choice = <Key extends 'theme' | 'contrast' | 'density' | 'zone'>({
  name,
  label,
  words,
  value,
}: {
  name: Key
  label: string
  words: Record<Display[Key], string>
  value: Display[Key]
}) => (
  <fieldset>
    <legend className="label">{label}</legend>
    <div className="flex flex-wrap gap-x-6 gap-y-2">
      {(Object.keys(words) as Display[Key][]).map((choice) => (
        <label key={choice} className="flex min-h-6 items-center gap-2">
          <input type="radio" name={name} checked={choice === value} onChange={() => setDisplay({ [name]: choice })} />
          {words[choice]}
        </label>
      ))}
    </div>
  </fieldset>
)
