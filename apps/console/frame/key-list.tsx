import { DialogFrame } from '../ui/overlays.tsx'
import { keys } from '../words/frame/keys.ts'

export const KeyList = ({ close }: { close: () => void }) => (
  <DialogFrame title={keys.title} close={close}>
    <dl className="facts">
      {keys.entries.map(([key, meaning]) => (
        <div key={key} className="contents">
          <dt>
            <kbd>{key}</kbd>
          </dt>
          <dd>{meaning}</dd>
        </div>
      ))}
    </dl>
  </DialogFrame>
)
