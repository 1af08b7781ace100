import { CSPProvider } from '@base-ui/react/csp-provider'
import { Dialog } from '@base-ui/react/dialog'
import { Menu } from '@base-ui/react/menu'
import { Link } from '@tanstack/react-router'
import { Bell, ChevronDown, KeyRound, LogOut, MonitorSmartphone, Settings2, X } from 'lucide-react'
import { useRef } from 'react'
import { IconButton } from '../forms/choices.tsx'
import { shown } from '../kit/format.ts'
import { t } from '../words/index.ts'

const PAGES = [
  ['/settings/display', Settings2, t.nav.display],
  ['/settings/sessions', MonitorSmartphone, t.nav.sessions],
  ['/settings/passkeys', KeyRound, t.nav.passkeys],
  ['/settings/service-accounts', KeyRound, t.nav.machines],
  ['/settings/notifications', Bell, t.nav.notifications],
  ['/settings/password', KeyRound, t.nav.password],
] as const

/** The only lazy chunk with floating layers: behavior by Base UI, styles by our tokens, no style elements. */
export const UserMenu = ({ name, signOut }: { name: string; signOut: () => void }) => (
  <CSPProvider disableStyleElements>
    <Menu.Root defaultOpen>
      <Menu.Trigger className="button quiet" aria-label={t.nav.user(name)}>
        {name}
        <ChevronDown size={16} aria-hidden="true" />
      </Menu.Trigger>
      <Menu.Portal>
        <Menu.Positioner align="end" sideOffset={4} className="z-30">
          <Menu.Popup className="popup">
            {PAGES.map(([to, Icon, word]) => (
              <Menu.Item key={to} className="popup-item" render={<Link to={to} />}>
                <Icon size={16} aria-hidden="true" />
                {word}
              </Menu.Item>
            ))}
            <Menu.Item className="popup-item" onClick={signOut}>
              <LogOut size={16} aria-hidden="true" />
              {t.nav.sign_out}
            </Menu.Item>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  </CSPProvider>
)

type DialogProps = {
  title: string
  close: () => void
  children: React.ReactNode
  footer?: React.ReactNode
  /** Whether the dialog can be dismissed without an answer. */
  dismissible?: boolean
  wide?: boolean
}

/** A dialog: holds the focus, closes with Escape, returns the focus to the element that opened it. */
export const DialogFrame = ({ title, close, children, footer, dismissible = true, wide = false }: DialogProps) => {
  const popup = useRef<HTMLDivElement>(null)
  const first = (selector: string) => popup.current?.querySelector<HTMLElement>(selector)
  return (
    <CSPProvider disableStyleElements>
      <Dialog.Root open onOpenChange={(open) => !open && dismissible && close()} disablePointerDismissal>
        <Dialog.Portal>
          <Dialog.Backdrop className="backdrop" />
          <Dialog.Popup
            ref={popup}
            className={wide ? 'dialog wide' : 'dialog'}
            // News that is to be read first, else the title: Enter at once must neither close nor decide.
            initialFocus={() => first('[data-first]') ?? first('h2[tabindex]') ?? true}
          >
            <div className="flex items-start gap-3 border-b border-line px-6 py-4">
              <Dialog.Title
                {...(dismissible && { tabIndex: -1 })}
                className="min-w-0 flex-1 text-title font-semibold wrap-anywhere"
              >
                {shown(title)}
              </Dialog.Title>
              {dismissible ? (
                <IconButton icon={X} word={t.close} size={18} look="quiet -my-1 -mr-3" onClick={close} />
              ) : null}
            </div>
            <div className="flex flex-col gap-4 overflow-y-auto px-6 py-4">{children}</div>
            {footer ? (
              <div className="flex flex-wrap justify-end gap-2 border-t border-line px-6 py-3">{footer}</div>
            ) : null}
          </Dialog.Popup>
        </Dialog.Portal>
      </Dialog.Root>
    </CSPProvider>
  )
}
