CREATE TABLE "identity"."changes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"request" jsonb NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"subject" jsonb NOT NULL,
	"digest" text NOT NULL,
	"requested_by" text NOT NULL,
	"requested_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"decided_by" text,
	"decided_at" timestamp with time zone,
	"user_id" uuid,
	CONSTRAINT "changes_status" CHECK ("identity"."changes"."status" in ('pending', 'confirmed', 'rejected', 'withdrawn'))
);
--> statement-breakpoint
CREATE TABLE "identity"."dual_control" (
	"id" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"since" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "dual_control_once" CHECK ("identity"."dual_control"."id")
);
--> statement-breakpoint
ALTER TABLE "identity"."grants" ADD COLUMN "confirmed_by" text;--> statement-breakpoint
ALTER TABLE "identity"."group_members" ADD COLUMN "confirmed_by" text;--> statement-breakpoint
ALTER TABLE "identity"."users" ADD COLUMN "reset_confirmed_by" text;--> statement-breakpoint
ALTER TABLE "identity"."users" ADD COLUMN "reset_link" text;--> statement-breakpoint
ALTER TABLE "identity"."users" ADD COLUMN "link_shown" boolean DEFAULT true NOT NULL;--> statement-breakpoint
CREATE INDEX "changes_status_id_index" ON "identity"."changes" USING btree ("status","id");--> statement-breakpoint
-- Whoever got the last link from the machine itself, and used it, alone knows the credential.
UPDATE "identity"."users" u SET "link_shown" = false WHERE (
  SELECT e.action FROM "identity"."user_events" e
  WHERE e.object = 'user:' || u.id AND e.outcome = 'done'
    AND e.action IN ('user.created', 'user.enrolment_created', 'user.bootstrapped', 'user.recovered')
  ORDER BY e.id DESC LIMIT 1
) IN ('user.bootstrapped', 'user.recovered') AND EXISTS (
  SELECT FROM "identity"."user_events" e
  WHERE e.object = 'user:' || u.id AND e.action = 'user.enrolled' AND e.outcome = 'done'
);
