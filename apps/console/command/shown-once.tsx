import { Button } from '../forms/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { DialogFrame } from '../ui/overlays.tsx'
import { t } from '../words/index.ts'

type ShownOnceProps = {
  title: string
  words: string
  /** The texts to copy, each with the name of its button. */
  shown: (readonly [label: string, text: string])[]
  close: () => void
}

/** Shows a secret from an answer. It can never be read again, so only the dialog's button closes it. */
export const ShownOnce = ({ title, words, shown, close }: ShownOnceProps) => (
  <DialogFrame
    title={title}
    close={close}
    dismissible={false}
    wide
    footer={<Button look="main" onClick={close} word={t.close} />}
  >
    <p role="status">{words}</p>
    {shown.map(([label, text]) => (
      <p key={label} className="flex items-start gap-2">
        <code className="min-w-0 wrap-anywhere">{text}</code> <CopyButton text={text} label={label} />
      </p>
    ))}
  </DialogFrame>
)
