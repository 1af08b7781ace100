DROP INDEX "catalog"."provider_expires";--> statement-breakpoint
ALTER TABLE "catalog"."provider" ADD COLUMN "swept" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "provider_expires" ON "catalog"."provider" USING btree ("expires_at") WHERE withdrawn_at is null and not swept;