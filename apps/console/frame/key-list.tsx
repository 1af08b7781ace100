import { DialogFrame } from '../ui/overlays.tsx'
import { Facts } from '../values/facts.tsx'
import { keys } from '../words/frame/keys.ts'

export const KeyList = ({ close }: { close: () => void }) => (
  <DialogFrame title={keys.title} close={close}>
    <Facts facts={keys.entries.map(([key, meaning]) => [<kbd key={key}>{key}</kbd>, meaning])} />
  </DialogFrame>
)
