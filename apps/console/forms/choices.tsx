/** A row of choices, one of which is selected. */
export const Choices = <T extends string>({
  label,
  choices,
  chosen,
  choose,
}: {
  label: string
  choices: Readonly<Record<T, string>>
  chosen: T
  choose: (choice: T) => void
}) => (
  <fieldset className="choices" aria-label={label}>
    {(Object.entries(choices) as [T, string][]).map(([choice, word]) => (
      <button key={choice} type="button" aria-pressed={choice === chosen} onClick={() => choose(choice)}>
        {word}
      </button>
    ))}
  </fieldset>
)
