import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Button } from '../forms/button.tsx'
import { t } from '../words/index.ts'

/** Copies a full id or digest of which the page shows only a part. */
export const CopyButton = ({ text, label = t.copy }: { text: string; label?: string }) => {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 2000)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = () => void navigator.clipboard?.writeText(text).then(() => setCopied(true))
  return (
    <Button
      look="quiet !min-h-6 !w-6 !p-0"
      onClick={copy}
      aria-label={copied ? t.copied : `${label} ${text}`}
      title={copied ? t.copied : label}
    >
      {copied ? <Check size={14} aria-hidden="true" /> : <Copy size={14} aria-hidden="true" />}
    </Button>
  )
}
