import type { LucideIcon } from 'lucide-react'
import { Button, type ButtonProps } from './button.tsx'

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

type IconButtonProps = ButtonProps & { icon: LucideIcon; word: string; size?: number }

/** A button that is only an icon; its name appears on hover. */
export const IconButton = ({ icon: Icon, word, look = 'quiet', size = 16, ...button }: IconButtonProps) => (
  <Button aria-label={word} title={word} {...button} look={`icon ${look}`}>
    <Icon size={size} aria-hidden="true" />
  </Button>
)
